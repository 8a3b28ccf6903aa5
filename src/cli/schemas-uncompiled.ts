import { config } from 'zod';

// Schema compilation takes longer than the few validations of a command. zod reads this setting when a schema is
// created. This module must therefore be imported before all modules with schemas.
config({ jitless: true });
