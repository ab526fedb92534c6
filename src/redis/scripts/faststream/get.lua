-- GET. Items of one: id. Each result is {id, due, envelope}, or false.

local function get(id)
    local score = score_of(id)
    local envelope = score and call('HGET', PAYLOADS, id)
    return envelope and {id, to_ms(score), envelope} or false
end

local results = {}
for at = 3, #ARGV do
    results[#results + 1] = get(ARGV[at])
end
return reply(results)
