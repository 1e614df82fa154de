-- Acknowledges and deletes entries that carry nothing: duplicates that their mark does not
-- name, and ids that are pending although their entry is gone.
--
-- KEYS  1 orders stream   2 attempts
-- ARGV  1 group   2.. entry ids
-- Reply the number of entries acknowledged.
if #KEYS ~= 2 or #ARGV < 2 then return redis.error_reply('ERR drop takes 2 keys and at least 2 arguments') end
local n = 0
for i = 2, #ARGV do
  n = n + redis.call('XACK', KEYS[1], ARGV[1], ARGV[i])
  redis.call('XDEL', KEYS[1], ARGV[i])
  redis.call('HDEL', KEYS[2], ARGV[i])
end
return n
