export { RedisConnection } from './connection.ts';
export { RedisKeyValue } from './key-value.ts';
export { RedisRateCounters } from './rate-counters.ts';
