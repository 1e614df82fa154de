-- Counts an event in a fixed window, or looks at the count.
--
-- KEYS  1 counter
-- ARGV  1 limit   2 window in milliseconds   3 count (1) or only look (0)
-- Reply milliseconds to wait before the next event, 0 when there may be one now
if #KEYS ~= 1 or #ARGV ~= 3 then return redis.error_reply('ERR limit takes 1 key and 3 arguments') end
local n
if ARGV[3] == '1' then n = redis.call('INCR', KEYS[1]) else n = tonumber(redis.call('GET', KEYS[1]) or '0') end
if n == 0 then return 0 end
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  left = tonumber(ARGV[2])
end
if n >= tonumber(ARGV[1]) then return left end
return 0
