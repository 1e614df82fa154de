-- Removes a consumer that is gone, only if it holds nothing: removing one with pending
-- entries would throw them away.
--
-- KEYS  1 orders stream
-- ARGV  1 group   2 consumer
-- Reply 1 removed   0 it still holds entries, or is not there
if #KEYS ~= 1 or #ARGV ~= 2 then return redis.error_reply('ERR forget takes 1 key and 2 arguments') end
for _, c in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local info = {}
  for i = 1, #c, 2 do info[c[i]] = c[i + 1] end
  if info['name'] == ARGV[2] and info['pending'] == 0 then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
    return 1
  end
end
return 0
