-- Reads a sale as admission would see it; writes nothing.
--
-- KEYS  1 sale   2 buyers   3 inflight
-- ARGV  1 voucher_id
-- Reply {now_ms, whole, stock, total, begin_ms, end_ms, state, loading, epoch, rev, generation, acked, in_flight, dead}
--       whole is 1 when the sale and both sentinels are there; without the sale {now_ms, 0}
if #KEYS ~= 3 or #ARGV ~= 1 then return redis.error_reply('ERR sale takes 3 keys and 1 argument') end
local now = integer(clock_ms())
local s = redis.call('HMGET', KEYS[1], 'v', 'stock', 'total', 'begin_ms', 'end_ms', 'state', 'loading', 'epoch', 'rev',
  'generation', 'acked', 'in_flight', 'dead')
if s[1] ~= '1' then return { now, 0 } end
local whole = redis.call('HEXISTS', KEYS[2], SENTINEL) == 1 and redis.call('HEXISTS', KEYS[3], SENTINEL .. ARGV[1]) == 1
return { now, whole and 1 or 0, s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11], s[12], s[13] }
