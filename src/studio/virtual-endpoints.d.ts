declare module 'virtual:endpoints' {
  /**
   * Method and path of each endpoint, by its name in the contracts, and the query parameter that restricts a list to
   * one namespace.
   */
  export const ENDPOINTS: Readonly<
    Record<string, readonly [method: string, path: string, namespaceParameter?: string]>
  >;
}

declare module '*.css';
