import { redisScript } from './script.ts';

/** Functions that all scripts share. A value is stored as its expiry time in ms (or nothing), `|`, and JSON. */
const COMMON = `
local scope, now = ARGV[1], tonumber(ARGV[2])
local function split(stored)
  local bar = string.find(stored, '|', 1, true)
  return tonumber(string.sub(stored, 1, bar - 1)), string.sub(stored, bar + 1)
end
local function find(key)
  local stored = redis.call('HGET', KEYS[1], key)
  if not stored then return nil end
  local expiresAt, value = split(stored)
  return value, expiresAt, expiresAt ~= nil and expiresAt <= now
end
local function remove(owner, key)
  local values = 'svc:cache:values:' .. owner
  local stored = redis.call('HGET', values, key)
  if stored then
    local _, value = split(stored)
    redis.call('HDEL', values, key)
    redis.call('HINCRBY', KEYS[4], owner, -(#key + #value))
    if redis.call('HLEN', values) == 0 then redis.call('HDEL', KEYS[4], owner) end
  end
  redis.call('ZREM', 'svc:cache:keys:' .. owner, key)
  redis.call('ZREM', KEYS[3], owner .. '\\0' .. key)
end
local function sweep(limit)
  local expired = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, limit)
  for _, member in ipairs(expired) do
    local nul = string.find(member, '\\0', 1, true)
    remove(string.sub(member, 1, nul - 1), string.sub(member, nul + 1))
  end
  return #expired
end
local function put(key, value, expiry)
  remove(scope, key)
  redis.call('HSET', KEYS[1], key, expiry .. '|' .. value)
  redis.call('ZADD', KEYS[2], 0, key)
  redis.call('HINCRBY', KEYS[4], scope, #key + #value)
  if expiry ~= '' then redis.call('ZADD', KEYS[3], expiry, scope .. '\\0' .. key) end
end
local function excess(key, value, maxBytes, maxKeys)
  if maxBytes == '' then return nil end
  local bytes = tonumber(redis.call('HGET', KEYS[4], scope) or 0)
  local keys = redis.call('HLEN', KEYS[1])
  local replaced = find(key)
  local newBytes = bytes + #key + #value - (replaced and #key + #replaced or 0)
  local newKeys = keys + (replaced and 0 or 1)
  if newBytes <= bytes and newKeys <= keys then return nil end
  if newBytes <= tonumber(maxBytes) and newKeys <= tonumber(maxKeys) then return nil end
  return { 'quota', bytes, keys }
end
local function refused(key, value, maxBytes, maxKeys)
  if not excess(key, value, maxBytes, maxKeys) then return nil end
  sweep(1000)
  return excess(key, value, maxBytes, maxKeys)
end
local key, value, expiry = ARGV[3], ARGV[4], ARGV[5]`;

/**
 * Writes an entry. Further ARGV: key, value, expiry time, limit in bytes, limit in keys, and `1` to keep an unexpired
 * entry. An empty limit means no limit.
 */
export const PUT = redisScript(`${COMMON}
if ARGV[8] == '1' then
  local found, _, isExpired = find(key)
  if found and not isExpired then return { 'kept' } end
end
local full = refused(key, value, ARGV[6], ARGV[7])
if full then return full end
put(key, value, expiry)
return { 'written' }`);

/** Adds a number to a counter. Further ARGV: the same as for PUT, with the number to add as the value. */
export const INCREMENT = redisScript(`${COMMON}
local full = refused(key, value, ARGV[6], ARGV[7])
if full then return full end
local found, expiresAt, isExpired = find(key)
if not found or isExpired then
  put(key, value, expiry)
  return { 'written', value, expiry }
end
local before = string.match(found, '^-?%d') and tonumber(found)
if not before or math.abs(before + tonumber(value)) > 9007199254740991 then return { 'unsummable', found } end
local sum = string.format('%.17g', before + tonumber(value))
local kept = expiresAt and string.format('%.0f', expiresAt) or ''
put(key, sum, kept)
return { 'written', sum, kept }`);

/** Deletes an entry. Further ARGV: key. Returns 1 if an unexpired entry was deleted. */
export const DELETE = redisScript(`${COMMON}
local found, _, isExpired = find(key)
remove(scope, key)
return found and not isExpired and 1 or 0`);

/** Returns keys and values. Further ARGV: start and end of the keys for ZRANGEBYLEX, and the limit. */
export const SCAN = redisScript(`${COMMON}
local from, limit, result = ARGV[3], tonumber(ARGV[5]), {}
while true do
  local page = redis.call('ZRANGEBYLEX', KEYS[2], from, ARGV[4], 'LIMIT', 0, limit)
  for _, name in ipairs(page) do
    from = '(' .. name
    local found, _, isExpired = find(name)
    if found and not isExpired then
      result[#result + 1] = name
      result[#result + 1] = redis.call('HGET', KEYS[1], name)
    end
    if #result == 2 * limit then return result end
  end
  if #page < limit then return result end
end`);

/** Deletes expired entries. `ARGV[3]` is the maximum number of entries to delete. */
export const SWEEP = redisScript(`${COMMON}
return sweep(tonumber(ARGV[3]))`);
