import type { CommandContext } from './context.ts';
import { currentGateway } from './current-gateway.ts';
import { UsageError } from './parse-args.ts';

type Named = Pick<CommandContext, 'globals' | 'platform' | 'env'>;

/**
 * The gateway that `--url` or SVC_GATEWAY_URL names, else the one that `svc login` was called for in this project, or by this
 * user outside of one; undefined: the one that runs here. Throws UsageError for what is no address.
 */
export function namedGateway(context: Named): string | undefined {
  return givenGateway(context) ?? gatewayHere(context).find();
}

/** What `--url` or SVC_GATEWAY_URL names. Throws UsageError for what is no address. */
export function givenGateway({ globals, platform }: Named): string | undefined {
  const url = globals.url ?? (platform().env.SVC_GATEWAY_URL || undefined);
  if (url === undefined || (/^https?:\/\//.test(url) && URL.canParse(url))) return url;
  const what = globals.url === undefined ? 'SVC_GATEWAY_URL' : '--url';
  throw new UsageError(
    `${what} must be an address such as https://svc.example.com, not ${JSON.stringify(url)}.`,
  );
}

/** Where `svc login` leads commands of this folder. */
export function gatewayHere({ platform, env }: Named) {
  const { configFile, projectDir } = platform();
  return currentGateway(env, configFile === null ? null : projectDir);
}
