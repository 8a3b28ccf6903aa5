declare module 'virtual:endpoints' {
  /** Method and path of each endpoint, by its name in the contracts. */
  export const ENDPOINTS: Readonly<Record<string, readonly [method: string, path: string]>>;
}

declare module '*.css';
