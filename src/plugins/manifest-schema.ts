import { z } from 'zod';
import { ManifestV3 } from '../contracts/index.ts';

/** The JSON schema of `svc.plugin.json`, for editors: `config/plugin.schema.json`. */
export function manifestSchema(): Record<string, unknown> {
  const { $schema, ...schema } = z.toJSONSchema(ManifestV3, { io: 'input', unrepresentable: 'any' });
  return {
    $schema,
    title: 'svc.plugin.json',
    description: 'Manifest of a plugin of the svc platform (svc.plugin/3)',
    ...schema,
  };
}
