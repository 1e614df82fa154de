-- Writes a sale into Redis under a load attempt's own epoch, with `loading` set.
--
-- KEYS  1 sale   2 buyers   3 inflight   4 staging (user_id -> order_id of the live rows)
-- ARGV  1 voucher_id   2 epoch   3 rev   4 total   5 begin_ms   6 end_ms   7 state   8 live rows
-- Reply {code, left}; code 0 not needed: the sale is whole and of this epoch or a later one
--       1 written   2 the staged rows are not all there
-- Only if the sale is absent, lost a sentinel, is loading, or has a smaller epoch. What is
-- left is total - |live rows + marks|, an order with both counted once, and not clamped:
-- a negative figure sells nothing and is seen as drift.
if #KEYS ~= 4 or #ARGV ~= 8 then return redis.error_reply('ERR load takes 4 keys and 8 arguments') end
local sale, buyers, inflight, staging = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local voucher, epoch = ARGV[1], ARGV[2]

local s = redis.call('HMGET', sale, 'v', 'loading', 'epoch', 'generation', 'stock')
local whole = s[1] == '1' and redis.call('HEXISTS', buyers, SENTINEL) == 1
  and redis.call('HEXISTS', inflight, SENTINEL .. voucher) == 1
if whole and s[2] == '0' and tonumber(s[3]) >= tonumber(epoch) then
  redis.call('DEL', staging)
  return { 0, s[5] }
end
-- A loading sale of a later attempt is that attempt's to finish.
if s[1] and tonumber(s[3]) > tonumber(epoch) then
  redis.call('DEL', staging)
  return { 0, s[5] }
end
if redis.call('HLEN', staging) ~= tonumber(ARGV[8]) then return { 2, '' } end

local queued, dead, both = 0, 0, 0
local fields = redis.call('HGETALL', inflight)
for i = 1, #fields, 2 do
  local m = mark_unpack(fields[i + 1])
  if m and m.voucher == voucher then
    local order = fields[i]
    if m.state == 'q' then queued = queued + 1 else dead = dead + 1 end
    if redis.call('HGET', staging, m.user) == order then
      both = both + 1
    else
      redis.call('HSETNX', staging, m.user, order)
    end
    redis.call('HSET', inflight, order, mark_pack(m.state, epoch, m.user, m.voucher, m.admitted_ms, m.place, m.trace))
  end
end
local acked = tonumber(ARGV[8]) - both
local left = tonumber(ARGV[4]) - acked - queued - dead

redis.call('DEL', buyers)
redis.call('HSET', staging, SENTINEL, epoch)
redis.call('RENAME', staging, buyers)
redis.call('PERSIST', buyers)
redis.call('HSET', inflight, SENTINEL .. voucher, epoch)
redis.call('DEL', sale)
redis.call('HSET', sale, 'v', '1', 'stock', integer(left), 'total', ARGV[4], 'begin_ms', ARGV[5], 'end_ms', ARGV[6],
  'state', ARGV[7], 'loading', '1', 'epoch', epoch, 'rev', ARGV[3],
  -- Above every generation of an earlier epoch, although the old value may be lost.
  'generation', integer(math.max(tonumber(s[4] or '0') + 1, tonumber(epoch) * 1000000)),
  'admitted', integer(acked + queued + dead), 'acked', integer(acked), 'in_flight', integer(queued), 'dead', integer(dead))
return { 1, integer(left) }
