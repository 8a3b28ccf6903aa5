import { z } from 'zod';
import {
  configureQueue,
  getQueue,
  QUEUE_DEFAULTS,
  type Queue,
  QueueSettings,
  type QueueSettingsInput,
} from '../../../contracts/index.ts';
import { codeOf } from '../../../kit/errors/errors.ts';
import type { CommandContext } from '../../context.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { UsageError } from '../../parse-args.ts';
import { queueArg } from './queue-args.ts';
import { queueText } from './show.ts';

/** Returns the settings in force. A queue without items and settings is unknown to the platform. */
async function settingsOf(name: string, client: CommandContext['client']): Promise<QueueSettings> {
  try {
    return (await client.call(getQueue, { params: { name } })).settings;
  } catch (error) {
    if (codeOf(error) === 'NOT_FOUND') return QUEUE_DEFAULTS;
    throw error;
  }
}

const NO_LIMIT = 'none';
const { maxAttempts, concurrency, leaseMs, maxLeaseMs, order } = QueueSettings.shape;

/** @spec docs/queues.md */
export const configure = defineCommand({
  name: 'queues configure',
  summary: 'Change settings of a queue',
  example: 'svc queues configure orders --max-attempts 5 --concurrency 4',
  args: z.object({
    ...queueArg,
    maxAttempts: z.coerce
      .number()
      .pipe(maxAttempts)
      .optional()
      .describe('leases after which an item is dead'),
    concurrency: z
      .union([z.literal(NO_LIMIT), z.coerce.number().pipe(concurrency.unwrap())])
      .optional()
      .describe(`maximum number of leased items, or "${NO_LIMIT}"`),
    leaseMs: z.coerce.number().pipe(leaseMs).optional().describe('duration of a lease'),
    maxLeaseMs: z.coerce.number().pipe(maxLeaseMs).optional().describe('longest lease'),
    order: order.optional().describe('items in order of each key, of the whole queue, or in no order'),
    reset: z.boolean().default(false).describe('all settings to their defaults, before the others apply'),
  }),
  positionals: ['queue'],
  async run({ queue, reset, concurrency: limit, ...flags }, { client }) {
    const given: QueueSettingsInput = {
      ...flags,
      ...(limit === undefined ? {} : { concurrency: limit === NO_LIMIT ? null : limit }),
    };
    const changes = Object.entries(given).filter(([, value]) => value !== undefined);
    if (changes.length === 0 && !reset) throw new UsageError('Pass a setting to change, or --reset.');
    const params = { name: queue };
    const before = reset ? QUEUE_DEFAULTS : await settingsOf(queue, client);
    const after = Object.entries({ ...before, ...Object.fromEntries(changes) });
    // Settings with their default value are left out, so that they follow a changed default.
    const body = Object.fromEntries(
      after.filter(([name, value]) => value !== QUEUE_DEFAULTS[name as keyof QueueSettings]),
    );
    return ok(await client.call(configureQueue, { params, body }));
  },
  text: (queue: Queue, style) => queueText(queue, style),
});
