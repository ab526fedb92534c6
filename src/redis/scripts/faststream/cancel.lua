-- CANCEL. Items of one: id. Each result is 1, or 0 if there is no such timer.

local results = {}
for at = 3, #ARGV do
    results[#results + 1] = score_of(ARGV[at]) and call('HEXISTS', PAYLOADS, ARGV[at]) or 0
    remove(ARGV[at])
end
return reply(results)
