-- ACK. Items of one: the secret of a token. Each result is 1, or 0 for a token that is not of a
-- live lease: then the timer stays, because it is another one.

local results, count = {}, 0
for at = 3, #ARGV do
    local lease = find_lease(ARGV[at])
    if lease then
        remove(lease.id)
        drop(ARGV[at])
        count = count + 1
    end
    results[#results + 1] = lease and 1 or 0
end
if count > 0 then call('HINCRBY', STATE, 'completed', count) end
return reply(results)
