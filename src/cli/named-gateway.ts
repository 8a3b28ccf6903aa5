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

export const isLoopback = (hostname: string): boolean =>
  /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);

/** Whether the address is that of the gateway which runs here at `own`: by another name of this machine, or its public one. */
export function isSameGateway({ platform }: Named, url: string, own: string): boolean {
  const { publicUrl } = platform().config.gateway;
  if (publicUrl !== null && new URL(publicUrl).origin === new URL(url).origin) return true;
  const placeOf = ({ protocol, hostname, port }: URL): string =>
    `${protocol} ${isLoopback(hostname) ? 'this machine' : hostname} ${port}`;
  return placeOf(new URL(url)) === placeOf(new URL(own));
}
