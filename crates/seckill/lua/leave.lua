-- Counts a lock down, and gives it back when nothing of it is left; only if it is still the caller's.
--
-- KEYS  1 lock   2 fence   3 line
-- ARGV  1 owner token   2 its fencing number, or empty when it never heard it
--       3 the owner's depth after, by its own count   4 lease in ms   5 channel
-- Reply 1 done   0 the lock is not the caller's any more
--
-- Whoever is first in line is told its turn on the channel. A message that is lost costs time,
-- never the lock: one in line asks again by itself.
if #KEYS ~= 3 or #ARGV ~= 5 then return redis.error_reply('ERR leave takes 3 keys and 5 arguments') end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
if ARGV[2] ~= '' and redis.call('GET', KEYS[2]) ~= ARGV[2] then return 0 end
if tonumber(ARGV[3]) > 0 then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
  redis.call('PEXPIRE', KEYS[1], integer(math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[4]))))
  return 1
end
redis.call('DEL', KEYS[1])
local first = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
if first then redis.call('PUBLISH', ARGV[5], first) end
return 1
