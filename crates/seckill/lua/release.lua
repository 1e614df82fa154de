-- Frees the memory of an ended sale that has nothing in flight.
--
-- KEYS  1 sale   2 buyers   3 inflight
-- ARGV  1 voucher_id   2 the latest end in milliseconds that is old enough
-- Reply 1 released   0 it ended later, or orders of it are still in flight or dead letters
if #KEYS ~= 3 or #ARGV ~= 2 then return redis.error_reply('ERR release takes 3 keys and 2 arguments') end
local s = redis.call('HMGET', KEYS[1], 'end_ms', 'in_flight', 'dead')
if s[1] and (tonumber(s[1]) > tonumber(ARGV[2]) or tonumber(s[2]) ~= 0 or tonumber(s[3]) ~= 0) then return 0 end
-- UNLINK frees a large hash beside the commands that follow.
redis.call('UNLINK', KEYS[1], KEYS[2])
redis.call('HDEL', KEYS[3], SENTINEL .. ARGV[1])
return 1
