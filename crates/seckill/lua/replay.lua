-- Gives a dead letter back to the queue.
--
-- KEYS  1 orders stream   2 inflight   3 dead stream   4 sale   5 buyers
-- ARGV  1 dead entry id   2 order_id   3 user_id   4 voucher_id   5 traceparent   (as the dead entry holds them)
-- Reply 1 queued again            2 its mark does not name this entry: only removed
--       0 the dead entry is gone  3 the sale is not loaded   4 no stock left
--       5 the buyer holds another order, or the id is another order's
-- An entry without a mark was never counted, or its count was lost: it takes a unit of stock.
if #KEYS ~= 5 or #ARGV ~= 5 then return redis.error_reply('ERR replay takes 5 keys and 5 arguments') end
local orders, inflight, dead, sale, buyers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, order, user, voucher, trace = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
if #redis.call('XRANGE', dead, id, id) == 0 then return 0 end

local function enqueue(admitted_ms, epoch, traceparent)
  return redis.call('XADD', orders, '*', 'v', '1', 'order_id', order, 'user_id', user, 'voucher_id', voucher,
    'admitted_ms', admitted_ms, 'epoch', epoch, 'traceparent', traceparent)
end

local m = mark_unpack(redis.call('HGET', inflight, order))
if m and (m.user ~= user or m.voucher ~= voucher) then return 5 end
if m then
  if m.state ~= 'd' or m.place ~= id then
    redis.call('XDEL', dead, id)
    return 2
  end
  local place = enqueue(m.admitted_ms, m.epoch, m.trace)
  redis.call('XDEL', dead, id)
  if redis.call('EXISTS', sale) == 1 then
    redis.call('HINCRBY', sale, 'dead', -1)
    redis.call('HINCRBY', sale, 'in_flight', 1)
  end
  redis.call('HSET', inflight, order, mark_pack('q', m.epoch, user, voucher, m.admitted_ms, place, m.trace))
  return 1
end

local s = redis.call('HMGET', sale, 'v', 'loading', 'stock', 'epoch')
if s[1] ~= '1' or s[2] ~= '0' or redis.call('HEXISTS', buyers, SENTINEL) == 0
  or redis.call('HEXISTS', inflight, SENTINEL .. voucher) == 0 then
  return 3
end
if tonumber(s[3]) <= 0 then return 4 end
local held = redis.call('HGET', buyers, user)
if held and held ~= order then return 5 end
local now_ms = integer(clock_ms())
local place = enqueue(now_ms, s[4], trace)
redis.call('XDEL', dead, id)
redis.call('HINCRBY', sale, 'stock', -1)
redis.call('HINCRBY', sale, 'in_flight', 1)
redis.call('HINCRBY', sale, 'admitted', 1)
redis.call('HSET', buyers, user, order)
redis.call('HSET', inflight, order, mark_pack('q', s[4], user, voucher, now_ms, place, trace))
return 1
