-- A user's orders that have a mark, looked for among the buyers of many sales of a lane.
--
-- KEYS  1 inflight   2.. buyers, a key for each sale
-- ARGV  1 user_id
-- Reply {order_id, mark, order_id, mark, …}
if #KEYS < 2 or #ARGV ~= 1 then return redis.error_reply('ERR mine takes 2 keys or more and 1 argument') end
local found = {}
for i = 2, #KEYS do
  local order = redis.call('HGET', KEYS[i], ARGV[1])
  local mark = order and redis.call('HGET', KEYS[1], order)
  if mark then
    found[#found + 1] = order
    found[#found + 1] = mark
  end
end
return found
