export declare function findS3Server(): Promise<string | null>;
export declare function isS3ServerBuilt(): boolean;
