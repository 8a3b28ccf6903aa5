import type { CommandContext } from './context.ts';
import { UsageError } from './parse-args.ts';

/** The gateway that `--url` or SVC_GATEWAY_URL names; undefined: the one that runs here. Throws UsageError for what is no address. */
export function namedGateway({
  globals,
  platform,
}: Pick<CommandContext, 'globals' | 'platform'>): string | undefined {
  const url = globals.url ?? (platform().env.SVC_GATEWAY_URL || undefined);
  if (url === undefined || (/^https?:\/\//.test(url) && URL.canParse(url))) return url;
  const what = globals.url === undefined ? 'SVC_GATEWAY_URL' : '--url';
  throw new UsageError(
    `${what} must be an address such as https://svc.example.com, not ${JSON.stringify(url)}.`,
  );
}
