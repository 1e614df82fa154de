-- Ends a load: the sale may sell, if it is still the one that this epoch wrote.
--
-- KEYS  1 sale   2 buyers   3 inflight
-- ARGV  1 voucher_id   2 epoch
-- Reply 1 finished   0 another epoch, a sentinel lost, or not loading
if #KEYS ~= 3 or #ARGV ~= 2 then return redis.error_reply('ERR finish takes 3 keys and 2 arguments') end
local s = redis.call('HMGET', KEYS[1], 'loading', 'epoch')
if s[1] ~= '1' or s[2] ~= ARGV[2] or redis.call('HEXISTS', KEYS[2], SENTINEL) == 0
  or redis.call('HEXISTS', KEYS[3], SENTINEL .. ARGV[1]) == 0 then
  return 0
end
redis.call('HSET', KEYS[1], 'loading', '0')
redis.call('HINCRBY', KEYS[1], 'generation', 1)
return 1
