-- Settles a dead letter as failed, after its row `failed` is committed.
--
-- KEYS  1 inflight   2 dead stream   3 sale   4 buyers
-- ARGV  1 dead entry id   2 order_id   3 user_id   4 voucher_id
-- Reply 1 given back: stock, mark and buyer   2 without a mark: only the dead entry removed
--       3 its mark is queued (replayed meanwhile) or another order's: only the dead entry removed
--       0 the dead entry was gone already
if #KEYS ~= 4 or #ARGV ~= 4 then return redis.error_reply('ERR discard takes 4 keys and 4 arguments') end
local inflight, dead, sale, buyers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, order, user, voucher = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local m = mark_unpack(redis.call('HGET', inflight, order))
local had = redis.call('XDEL', dead, id)
local function release_buyer()
  if redis.call('HGET', buyers, user) == order then redis.call('HDEL', buyers, user) end
end
if m and m.user == user and m.voucher == voucher and m.state == 'd' then
  redis.call('XDEL', dead, m.place)
  if redis.call('EXISTS', sale) == 1 then
    redis.call('HINCRBY', sale, 'dead', -1)
    redis.call('HINCRBY', sale, 'stock', 1)
    redis.call('HINCRBY', sale, 'generation', 1)
  end
  redis.call('HDEL', inflight, order)
  release_buyer()
  return 1
end
if not m then release_buyer() end
if had == 0 then return 0 end
return m and 3 or 2
