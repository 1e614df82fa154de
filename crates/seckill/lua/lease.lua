-- Leases a block of a day's order numbers.
--
-- KEYS  1 the day's sequence
-- ARGV  1 block size   2 the day's start in milliseconds   3 the caller's milliseconds of that day
-- Reply the last number of the block (the block is the `size` numbers up to it), '' when the day's 2^32 are used up
-- A missing key starts at milliseconds-of-day x 49: above everything leased before as long as
-- the day's mean is below 49,000/s, and 86,400,000 x 49 < 2^32. The later of both clocks counts.
if #KEYS ~= 1 or #ARGV ~= 3 then return redis.error_reply('ERR lease takes 1 key and 3 arguments') end
local size = tonumber(ARGV[1])
local at = tonumber(redis.call('GET', KEYS[1]) or '-1')
if at < 0 then
  local elapsed = math.max(clock_ms() - tonumber(ARGV[2]), tonumber(ARGV[3]))
  at = math.min(math.max(elapsed, 0), 86399999) * 49
end
local last = at + size
-- The very last number stays unused: the one above what was issued always exists.
if last > 4294967294 then return '' end
redis.call('SET', KEYS[1], integer(last), 'EX', 259200)
return integer(last)
