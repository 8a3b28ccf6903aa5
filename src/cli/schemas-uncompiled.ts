import { config } from 'zod';

// Compiling a schema takes longer than the few validations of a command. zod reads this setting when a schema is
// created, so this module must be imported before all modules with schemas.
config({ jitless: true });
