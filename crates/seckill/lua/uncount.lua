-- Takes back a counted try that was no failure of the entry's.
--
-- KEYS  1 attempts
-- ARGV  1 entry id
-- Reply the tries that are left.
-- An entry that somebody else brought to its end meanwhile has no count any more, and gets none.
if #KEYS ~= 1 or #ARGV ~= 1 then return redis.error_reply('ERR uncount takes 1 key and 1 argument') end
local tries = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
if tries > 1 then return redis.call('HINCRBY', KEYS[1], ARGV[1], -1) end
redis.call('HDEL', KEYS[1], ARGV[1])
return 0
