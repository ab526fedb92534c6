-- CANCEL. Items of one: id. Each result is 1, or 0 if there is no such unfinished timer.

local function cancel(id)
    local r, state = look(id)
    if not r or state >= DONE then return 0 end
    take_out(id, r, state)
    finish(id, r.prefix, CANCELLED, '')
    return 1
end

local results = {}
for at = 2, #ARGV do
    results[#results + 1] = cfg.known and cancel(ARGV[at]) or 0
end
return reply(results)
