-- Gives marks whose entry is gone a new entry, and the new place.
--
-- KEYS  1 orders stream   2 inflight   3 dead stream
-- ARGV  order ids
-- Reply {restored to the queue, restored to the dead letters}
-- An entry counts only if it carries this order: a stream that was lost and made again
-- within a millisecond can use an id twice.
if #KEYS ~= 3 or #ARGV < 1 then return redis.error_reply('ERR restore takes 3 keys and order ids') end
local orders, inflight, dead = KEYS[1], KEYS[2], KEYS[3]

local function carries(stream, place, order)
  local found = redis.call('XRANGE', stream, place, place)
  if #found == 0 then return false end
  local fields = found[1][2]
  for i = 1, #fields, 2 do
    if fields[i] == 'order_id' then return fields[i + 1] == order end
  end
  return false
end

local queued, buried = 0, 0
for _, order in ipairs(ARGV) do
  local m = mark_unpack(redis.call('HGET', inflight, order))
  if m and m.state == 'q' and not carries(orders, m.place, order) then
    local place = redis.call('XADD', orders, '*', 'v', '1', 'order_id', order, 'user_id', m.user, 'voucher_id', m.voucher,
      'admitted_ms', m.admitted_ms, 'epoch', m.epoch, 'traceparent', m.trace)
    redis.call('HSET', inflight, order, mark_pack('q', m.epoch, m.user, m.voucher, m.admitted_ms, place, m.trace))
    queued = queued + 1
  elseif m and m.state == 'd' and not carries(dead, m.place, order) then
    local place = redis.call('XADD', dead, '*', 'v', '1', 'entry_id', m.place, 'order_id', order, 'user_id', m.user,
      'voucher_id', m.voucher, 'reason', 'restored: the dead letter was lost, its mark was not', 'deliveries', '0',
      'at_ms', integer(clock_ms()), 'payload', '{}')
    redis.call('HSET', inflight, order, mark_pack('d', m.epoch, m.user, m.voucher, m.admitted_ms, place, m.trace))
    buried = buried + 1
  end
end
return { queued, buried }
