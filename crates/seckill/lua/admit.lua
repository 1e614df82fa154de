-- Decides whether a user gets a voucher: the only place that does.
--
-- KEYS  1 sale   2 buyers   3 orders stream   4 inflight        (one hash slot)
-- ARGV  1 order_id (proposed)   2 user_id   3 voucher_id   4 traceparent
-- Reply {code, order_id, generation, begin_ms, place}; code
--   0 admitted (also when this very id was admitted before: a command sent twice)
--   1 sold out   2 already ordered (order_id is the earlier one)   3 not started (begin_ms)
--   4 ended   5 not loaded   6 paused or closed
-- Atomic: the whole decision. Redis does not roll a script back, so everything is read
-- and judged first, and the one command that can fail (XADD) comes first among the writes.
-- Example: EVALSHA <sha> 4 s:{0}:sale:7 s:{0}:buyers:7 s:{0}:orders s:{0}:inflight 42 9 7 ''
if #KEYS ~= 4 or #ARGV ~= 4 then return redis.error_reply('ERR admit takes 4 keys and 4 arguments') end
local sale, buyers, orders, inflight = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local order, user, voucher, trace = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local s = redis.call('HMGET', sale, 'v', 'stock', 'begin_ms', 'end_ms', 'state', 'loading', 'epoch', 'generation', 'admitted', 'in_flight')
local b = redis.call('HMGET', buyers, SENTINEL, user)
if s[1] ~= '1' or s[6] ~= '0' or not b[1] or redis.call('HEXISTS', inflight, SENTINEL .. voucher) == 0 then
  return { 5, '', '', '', '' }
end
-- Before everything that changes with time: a retry after the end still gets its id.
if b[2] then
  if b[2] == order then return { 0, order, s[8], '', '' } end
  return { 2, b[2], s[8], '', '' }
end
local now = clock_ms()
-- The end before all else that changes: a sale that is over is over, paused or not, begun or not.
if now >= tonumber(s[4]) then return { 4, '', s[8], '', '' } end
if s[5] ~= 'open' then return { 6, '', s[8], '', '' } end
if now < tonumber(s[3]) then return { 3, '', s[8], s[3], '' } end
local stock = tonumber(s[2])
if stock <= 0 then return { 1, '', s[8], '', '' } end

local now_ms, left, admitted, in_flight = integer(now), integer(stock - 1), integer(s[9] + 1), integer(s[10] + 1)
local place = redis.call('XADD', orders, '*', 'v', '1', 'order_id', order, 'user_id', user, 'voucher_id', voucher,
  'admitted_ms', now_ms, 'epoch', s[7], 'traceparent', trace)
redis.call('HSET', sale, 'stock', left, 'admitted', admitted, 'in_flight', in_flight)
redis.call('HSET', buyers, user, order)
redis.call('HSET', inflight, order, mark_pack('q', s[7], user, voucher, now_ms, place, trace))
return { 0, order, s[8], '', place }
