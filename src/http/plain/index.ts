export type { PlainExchange, PlainRequest, TakePlain } from './connection.ts';
export { takePlainRequests } from './connections.ts';
