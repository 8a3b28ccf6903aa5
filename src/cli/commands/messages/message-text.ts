import type { MessageCounts, MessageStatus } from '../../../contracts/index.ts';
import type { Style } from '../../style.ts';

export function statusText(status: MessageStatus, style: Style): string {
  if (status === 'succeeded') return style.green(status);
  return status === 'dead' ? style.red(status) : style.yellow(status);
}

/** Formats the numbers of endpoints by status, without those that are 0. */
export function countsText(counts: MessageCounts, style: Style): string {
  const entries = Object.entries(counts) as Array<[MessageStatus, number]>;
  const shown = entries.filter(([, count]) => count > 0);
  return shown.map(([status, count]) => `${count} ${statusText(status, style)}`).join(', ') || 'no endpoint';
}
