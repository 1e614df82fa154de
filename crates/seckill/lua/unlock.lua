-- Gives a lease lock back, only if the caller still holds it.
--
-- KEYS  1 lock
-- ARGV  1 owner token
-- Reply 1 given back   0 it was not the caller's any more
if #KEYS ~= 1 or #ARGV ~= 1 then return redis.error_reply('ERR unlock takes 1 key and 1 argument') end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('DEL', KEYS[1])
return 1
