export type { PlainExchange, TakePlain } from './connection.ts';
export { takePlainRequests } from './connections.ts';
