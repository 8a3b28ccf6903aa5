export type { PlainExchange, TakePlain } from './connection.ts';
export { takePlainRequests } from './connections.ts';
export type { PlainRequest } from './request.ts';
