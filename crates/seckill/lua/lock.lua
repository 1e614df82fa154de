-- Takes or renews a lease lock.
--
-- KEYS  1 lock (hash: owner -> depth)
-- ARGV  1 owner token   2 lease in milliseconds
-- Reply 0 the caller holds it now   n somebody else does, for n more milliseconds at the most
if #KEYS ~= 1 or #ARGV ~= 2 then return redis.error_reply('ERR lock takes 1 key and 2 arguments') end
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  redis.call('HSET', KEYS[1], ARGV[1], '1')
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 0
end
return math.max(redis.call('PTTL', KEYS[1]), 1)
