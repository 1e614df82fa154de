-- Applies one change of a running sale, strictly in the order of its rev, once.
--
-- KEYS  1 sale
-- ARGV  1 rev   2 kind: stock | pause | resume | end   3 value (units added, or the end in milliseconds)
-- Reply {code, the sale's rev}; code 0 the sale is absent   1 applied   2 was applied before
--       3 an earlier rev is missing
if #KEYS ~= 1 or #ARGV ~= 3 then return redis.error_reply('ERR apply takes 1 key and 3 arguments') end
local sale, rev, kind, value = KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3]
local at = redis.call('HGET', sale, 'rev')
if not at then return { 0, '0' } end
if tonumber(at) >= rev then return { 2, at } end
if tonumber(at) ~= rev - 1 then return { 3, at } end
if kind == 'stock' then
  redis.call('HINCRBY', sale, 'stock', value)
  redis.call('HINCRBY', sale, 'total', value)
elseif kind == 'pause' then
  redis.call('HSET', sale, 'state', 'paused')
elseif kind == 'resume' then
  redis.call('HSET', sale, 'state', 'open')
elseif kind == 'end' then
  redis.call('HSET', sale, 'end_ms', value)
else
  return redis.error_reply('ERR apply: unknown kind')
end
redis.call('HSET', sale, 'rev', ARGV[1])
-- A process that answers "sold out" by itself forgets it at the next generation.
redis.call('HINCRBY', sale, 'generation', 1)
return { 1, ARGV[1] }
