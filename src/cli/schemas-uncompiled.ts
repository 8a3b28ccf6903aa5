import { config } from 'zod';

// A command parses a thing or two once: compiling parsers for that costs more than it saves. Each schema asks when it is
// made, so this must run before anything that makes one is loaded.
config({ jitless: true });
