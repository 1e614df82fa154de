-- Adds live rows to the hash of a load attempt, which expires from its first row on.
--
-- KEYS  1 staging
-- ARGV  1 seconds that it outlives the attempt   2.. user_id, order_id, …
-- Reply the rows staged so far.
if #KEYS ~= 1 or #ARGV < 3 or #ARGV % 2 ~= 1 then return redis.error_reply('ERR stage takes 1 key, seconds and pairs') end
for i = 2, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return redis.call('HLEN', KEYS[1])
