-- Stops a sale at once, before it is loaded anew under another epoch.
--
-- KEYS  1 sale
-- Reply 1 closed   0 the sale is absent
if #KEYS ~= 1 or #ARGV ~= 0 then return redis.error_reply('ERR close takes 1 key and no argument') end
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'state', 'paused')
redis.call('HINCRBY', KEYS[1], 'generation', 1)
return 1
