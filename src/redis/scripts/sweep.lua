-- Ends what is past, and finds out what is next: for a node that was woken by the time.

return reply({})
