-- Frees the memory of an ended sale that has nothing in flight.
--
-- KEYS  1 sale   2 buyers   3 inflight
-- ARGV  1 voucher_id   2 milliseconds that a sale is held after its end   3 the end, if the sale is absent
-- Reply 1 released   0 it ended later, or orders of it are still in flight or dead letters
if #KEYS ~= 3 or #ARGV ~= 3 then return redis.error_reply('ERR release takes 3 keys and 3 arguments') end
local s = redis.call('HMGET', KEYS[1], 'end_ms', 'in_flight', 'dead')
-- By Redis' clock, as everything about a sale's window.
if tonumber(s[1] or ARGV[3]) + tonumber(ARGV[2]) > clock_ms() then return 0 end
if s[1] and (tonumber(s[2]) ~= 0 or tonumber(s[3]) ~= 0) then return 0 end
-- UNLINK frees a large hash beside the commands that follow.
redis.call('UNLINK', KEYS[1], KEYS[2])
redis.call('HDEL', KEYS[3], SENTINEL .. ARGV[1])
return 1
