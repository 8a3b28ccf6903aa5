import type { AnalyticsEvent } from '../../../contracts/index.ts';
import { oneLine } from '../../../kit/security/escape-controls.ts';
import type { Style } from '../../style.ts';

/** Formats an event as `2030-01-31 12:03:04Z  plugin.command.completed  svc  pluginId=github …`. */
export function eventLine({ ts, type, source, payload }: AnalyticsEvent, style: Style): string {
  const at = `${ts.slice(0, 19).replace('T', ' ')}Z`;
  const details = style.dim(oneLine(payloadText(payload)));
  return [style.dim(at), style.cyan(type.padEnd(26)), source.product, details].join('  ');
}

function payloadText(payload: unknown): string {
  if (payload === undefined) return '';
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload))
    return JSON.stringify(payload);
  return Object.entries(payload)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
}
