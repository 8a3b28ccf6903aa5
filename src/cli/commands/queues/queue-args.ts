import { z } from 'zod';
import { QueueName } from '../../../contracts/index.ts';
import type { Style } from '../../style.ts';

export const queueArg = { queue: QueueName.describe('name of the queue') };
export const leaseArgs = {
  ...queueArg,
  leases: z.array(z.string().min(1)).min(1).describe('lease ids'),
};

interface LeaseReply {
  leaseId: string;
  status: string | null;
  error: { code: string; message: string } | null;
}

/** Returns the result of a command on leases. The command fails if a lease was lost. */
export function leaseResult<Item extends LeaseReply>(reply: { items: Item[] }) {
  const lost = reply.items.find(({ error }) => error !== null)?.error;
  return lost
    ? { exitCode: 1 as const, result: reply, error: lost }
    : { exitCode: 0 as const, result: reply };
}

export function leaseText({ items }: { items: readonly LeaseReply[] }, style: Style): string {
  return items
    .map(({ leaseId, status, error }) =>
      error
        ? `${style.red(error.code)}  ${leaseId}  ${error.message}`
        : `${style.green(status!)}  ${leaseId}`,
    )
    .join('\n');
}
