import type { CommandContext } from './context.ts';
import { currentGateway } from './current-gateway.ts';
import { UsageError } from './parse-args.ts';

type Named = Pick<CommandContext, 'globals' | 'platform' | 'env'>;

/**
 * Returns the gateway selected by `--url`, SVC_GATEWAY_URL or `svc login`, or undefined for the local gateway. Throws
 * UsageError for an invalid URL.
 */
export function selectedGateway(context: Named): string | undefined {
  return givenGateway(context) ?? gatewayHere(context).find();
}

/** Returns the gateway that `--url` or SVC_GATEWAY_URL selects, if any. Throws UsageError for an invalid URL. */
export function givenGateway({ globals, platform }: Named): string | undefined {
  const url = globals.url ?? (platform().env.SVC_GATEWAY_URL || undefined);
  if (url === undefined || (/^https?:\/\//.test(url) && URL.canParse(url))) return url;
  const source = globals.url === undefined ? 'SVC_GATEWAY_URL' : '--url';
  throw new UsageError(
    `${source} must be an address such as https://svc.example.com, not ${JSON.stringify(url)}.`,
  );
}

/** Returns the store of the gateway that `svc login` selected for the current project. */
export function gatewayHere({ platform, env }: Named) {
  const { configFile, projectDir } = platform();
  return currentGateway(env, configFile === null ? null : projectDir);
}

export const isLoopback = (hostname: string): boolean =>
  /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);

/**
 * Returns whether two URLs reach the same gateway. The result is true if both URLs have the same origin or the same
 * port of this machine, or if `url` is the public URL.
 */
export function isSameGateway({ platform }: Named, url: string, own: string): boolean {
  const { publicUrl } = platform().config.gateway;
  if (publicUrl !== null && new URL(publicUrl).origin === new URL(url).origin) return true;
  const placeOf = ({ protocol, hostname, port }: URL): string =>
    `${protocol} ${isLoopback(hostname) ? 'this machine' : hostname} ${port}`;
  return placeOf(new URL(url)) === placeOf(new URL(own));
}
