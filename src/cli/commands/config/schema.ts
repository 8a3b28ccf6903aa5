import { z } from 'zod';
import { configFileSchema } from '../../../kit/config/config-file.ts';
import { defineCommand, ok } from '../../define-command.ts';

/** @spec docs/operations.md "Configuration" */
export const schema = defineCommand({
  name: 'config schema',
  summary: 'Print the JSON Schema of svc.config.json',
  example: 'svc config schema > svc.schema.json',
  verbatim: true,
  args: z.object({}),
  run: async () => ok(configFileSchema()),
  text: (result: Record<string, unknown>) => JSON.stringify(result, null, 2),
});
