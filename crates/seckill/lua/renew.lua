-- Gives a lock its whole lease again, only if it is still the caller's.
--
-- KEYS  1 lock   2 fence
-- ARGV  1 owner token   2 its fencing number   3 lease in ms
-- Reply 1 done   0 the lock is not the caller's any more
if #KEYS ~= 2 or #ARGV ~= 3 then return redis.error_reply('ERR renew takes 2 keys and 3 arguments') end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 or redis.call('GET', KEYS[2]) ~= ARGV[2] then return 0 end
redis.call('PEXPIRE', KEYS[1], integer(math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[3]))))
redis.call('PEXPIRE', KEYS[2], integer(ARGV[3] + 86400000))
return 1
