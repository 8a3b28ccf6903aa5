/** A browser without pages: it keeps cookies by origin, and follows redirects only when told. */
export class SignInClient {
  readonly #cookies = new Map<string, Map<string, string>>();

  async get(url: string, init: RequestInit = {}): Promise<Response> {
    const { origin } = new URL(url);
    const jar = this.#jar(origin);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { ...(init.headers as Record<string, string>), ...(cookie ? { cookie } : {}) };
    const response = await fetch(url, { ...init, headers, redirect: 'manual' });
    for (const line of response.headers.getSetCookie()) {
      const [pair, ...attributes] = line.split(/;\s*/);
      const at = pair!.indexOf('=');
      const isGone =
        attributes.some((one) => /^max-age=0$/i.test(one)) || /expires=Thu, 01 Jan 1970/i.test(line);
      if (isGone) jar.delete(pair!.slice(0, at));
      else jar.set(pair!.slice(0, at), pair!.slice(at + 1));
    }
    return response;
  }

  /** Returns where a response leads, as an absolute URL. */
  static target(response: Response): string {
    return new URL(response.headers.get('location') ?? '', response.url).href;
  }

  /** Follows redirects until `stop` holds for the next address, and returns that address. */
  async follow(url: string, stop: (url: string) => boolean): Promise<string> {
    for (let next = url, steps = 0; ; steps++) {
      if (stop(next)) return next;
      if (steps > 10) throw new Error(`Too many redirects; the last one leads to ${next}`);
      const response = await this.get(next);
      if (!response.headers.has('location')) return next;
      next = SignInClient.target(response);
    }
  }

  /** Sends the sign-in form of the provider, and returns the address of the gateway to which it leads. */
  async signIn(start: string, login: string): Promise<string> {
    const form = await this.follow(start, (url) => url.includes('/interaction/'));
    const sent = await this.get(form, {
      method: 'POST',
      body: new URLSearchParams({ login }),
    });
    return this.follow(SignInClient.target(sent), (url) => url.includes('/studio/oidc/callback'));
  }

  cookiesOf(url: string): Map<string, string> {
    return this.#jar(new URL(url).origin);
  }

  #jar(origin: string): Map<string, string> {
    const jar = this.#cookies.get(origin) ?? new Map<string, string>();
    this.#cookies.set(origin, jar);
    return jar;
  }
}
