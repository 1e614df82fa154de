-- Acknowledges orders whose rows are committed: entry, mark and counters in one step.
--
-- KEYS  1 orders stream   2 inflight   3 attempts   4 dead stream   5.. the sales named by the entries
-- ARGV  1 group   then five for each order:
--       entry_id ('' when none is held)   order_id   user_id   voucher_id   index of its sale in KEYS
-- Reply the number of marks that were there.
-- Counters move only if the mark is there and is of this user and voucher; the entry at the
-- mark's place is removed wherever it is, so nothing is left that could be delivered again.
if #KEYS < 5 or #ARGV < 6 or (#ARGV - 1) % 5 ~= 0 then
  return redis.error_reply('ERR ack takes at least 5 keys and 1 + 5n arguments')
end
local orders, inflight, attempts, dead, group = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1]
local moved, sums = 0, {}

local function drop(entry)
  -- The group may have been lost: then there is nothing to acknowledge.
  redis.pcall('XACK', orders, group, entry)
  redis.call('XDEL', orders, entry)
  redis.call('HDEL', attempts, entry)
end

for i = 2, #ARGV, 5 do
  local entry, order, user, voucher, sale = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], KEYS[tonumber(ARGV[i + 4])]
  local m = mark_unpack(redis.call('HGET', inflight, order))
  if entry ~= '' then drop(entry) end
  if m and m.user == user and m.voucher == voucher then
    local sum = sums[sale]
    if not sum then
      sum = { in_flight = 0, dead = 0 }
      sums[sale] = sum
    end
    if m.state == 'q' then
      if m.place ~= entry then drop(m.place) end
      sum.in_flight = sum.in_flight + 1
    else
      redis.call('XDEL', dead, m.place)
      sum.dead = sum.dead + 1
    end
    redis.call('HDEL', inflight, order)
    moved = moved + 1
  end
end

for sale, sum in pairs(sums) do
  if redis.call('EXISTS', sale) == 1 then
    local c = redis.call('HMGET', sale, 'in_flight', 'dead', 'acked')
    redis.call('HSET', sale, 'in_flight', integer(c[1] - sum.in_flight), 'dead', integer(c[2] - sum.dead),
      'acked', integer(c[3] + sum.in_flight + sum.dead))
  end
end
return moved
