-- Leaves the line for a lock.
--
-- KEYS  1 lock   2 line   3 waiting
-- ARGV  1 owner token   2 channel
-- Reply 1 it stood there   0 it did not
--
-- If its turn had come, the next one's has.
if #KEYS ~= 3 or #ARGV ~= 2 then return redis.error_reply('ERR withdraw takes 3 keys and 2 arguments') end
redis.call('ZREM', KEYS[3], ARGV[1])
if redis.call('ZREM', KEYS[2], ARGV[1]) == 0 then return 0 end
local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
if first and redis.call('EXISTS', KEYS[1]) == 0 then redis.call('PUBLISH', ARGV[2], first) end
return 1
