export declare function findS3Server(): Promise<string | null>;
