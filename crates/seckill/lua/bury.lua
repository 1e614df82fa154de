-- Moves an entry that can't be persisted to the dead letters, with its reason.
--
-- KEYS  1 orders stream   2 inflight   3 attempts   4 dead stream   5 sale
-- ARGV  1 group   2 consumer   3 entry_id   4 order_id   5 user_id   6 voucher_id ('' when unreadable)
--       7 reason   8 payload (the entry's fields as JSON)
-- Reply {code, dead entry id}; code 0 not pending with the caller: nothing was done
--       1 moved   2 a duplicate that its mark does not name: only removed
if #KEYS ~= 5 or #ARGV ~= 8 then return redis.error_reply('ERR bury takes 5 keys and 8 arguments') end
local orders, inflight, attempts, dead, sale = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local group, consumer, entry, order, user, voucher = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

local held = redis.call('XPENDING', orders, group, entry, entry, 1, consumer)
if #held == 0 then return { 0, '' } end
local m = order ~= '' and mark_unpack(redis.call('HGET', inflight, order)) or nil
local named = m and m.user == user and m.voucher == voucher
local duplicate = named and m.place ~= entry

local id = ''
if not duplicate then
  id = redis.call('XADD', dead, '*', 'v', '1', 'entry_id', entry, 'order_id', order, 'user_id', user,
    'voucher_id', voucher, 'reason', ARGV[7], 'deliveries', held[1][4], 'at_ms', integer(clock_ms()), 'payload', ARGV[8])
end
redis.call('XACK', orders, group, entry)
redis.call('XDEL', orders, entry)
redis.call('HDEL', attempts, entry)
if duplicate then return { 2, '' } end
if named then
  if m.state == 'q' and redis.call('EXISTS', sale) == 1 then
    redis.call('HINCRBY', sale, 'in_flight', -1)
    redis.call('HINCRBY', sale, 'dead', 1)
  end
  redis.call('HSET', inflight, order, mark_pack('d', m.epoch, m.user, m.voucher, m.admitted_ms, id, m.trace))
end
return { 1, id }
