import type { RefusedDelivery } from './refused-delivery.ts';

/** Returns URLs that the sender may have signed instead of the one that the gateway checked. */
export function urlVariants({ request, directUrl }: Pick<RefusedDelivery, 'request' | 'directUrl'>): Array<{
  url: string;
  target: string;
}> {
  const { target } = request;
  const bases = [request.url, directUrl].map((url) => url.slice(0, url.length - target.length));
  const schemes = ['https://', 'http://'];
  const all = new Set(bases.flatMap((base) => schemes.map((scheme) => base.replace(/^https?:\/\//, scheme))));
  return [...all].flatMap((base) => targetVariants(target).map((one) => ({ url: base + one, target: one })));
}

function targetVariants(target: string): string[] {
  const mark = target.indexOf('?');
  const path = mark === -1 ? target : target.slice(0, mark);
  const query = mark === -1 ? '' : target.slice(mark);
  const otherSlash = path.endsWith('/') ? path.slice(0, -1) : `${path}/`;
  return [target, otherSlash + query, path, otherSlash];
}
