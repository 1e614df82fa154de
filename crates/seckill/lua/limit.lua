-- Counts an event against a limit in a fixed window.
--
-- KEYS  1 counter
-- ARGV  1 limit   2 window in milliseconds
-- Reply milliseconds to wait, 0 when within the limit
if #KEYS ~= 1 or #ARGV ~= 2 then return redis.error_reply('ERR limit takes 1 key and 2 arguments') end
local n = redis.call('INCR', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  left = tonumber(ARGV[2])
end
if n > tonumber(ARGV[1]) then return left end
return 0
